package datasets

import "fmt"

// Set is a public data set.
type Set struct {
	Name    string
	What    string // one line
	Licence string
	Source  string // where it comes from, for people
	Files   []File
	// Read gives the flags by which `precompute snapshot` reads the set in dir.
	Read func(dir string) []string
}

// File is one download.
type File struct {
	URL       string
	Name      string // its place in the set's folder; of an archive, a name for messages
	SizeBytes int64  // 0 = unknown
	MaxBytes  int64  // of a file of unknown size
	SHA256    string // hex; "" = on first use
	Known     Known  // how SHA256 is known
	Lines     int64  // of a file whose digest isn't known: its number of lines as the literature has it; 0 = unknown
	Unpack    *Unpack
}

// Known says how a pinned digest is known.
type Known string

// The ways to know a digest.
const (
	// Measured digests are those of copies of the very files, which the tests hash again (PRELIFT_DATA).
	Measured Known = "measured"
	// Published digests are pinned by other public projects for the same address: arxiv.zip by ten, products.zip by
	// three, PubMed's allx by two (whose digests for the 23 other Planetoid files are those measured), Wikidata5M by
	// one family; YAGO3-10 and CoDEx-M by one whose digests of FB15k-237 and WN18RR are those measured, proteins.zip
	// by one whose digest of products.zip is that of the others.
	Published Known = "published"
)

// Unpack says what to take out of an archive.
type Unpack struct {
	Format   string            // zip or tar.gz
	Places   map[string]string // member -> place in the set's folder; both end in / for whole folders
	MaxBytes int64             // of all that is unpacked
}

const (
	mib = 1 << 20
	gib = 1 << 30

	planetoid = "https://raw.githubusercontent.com/kimiyoung/planetoid/af6abf468a772cc055bec88c52e4d6f51b7c37e3/data/"
	convE     = "https://raw.githubusercontent.com/TimDettmers/ConvE/f3c0eb286025410fa5b4c04696c918264163d0ca/"
	rotatE    = "https://raw.githubusercontent.com/DeepGraphLearning/KnowledgeGraphEmbedding/2e440e0f9c687314d5ff67ead68ce985dc446e3a/data/"
	openKE    = "https://raw.githubusercontent.com/thunlp/OpenKE/3b7f0b19441f11d6bc9331e8d1001a056f759f00/benchmarks/"
	codex     = "https://raw.githubusercontent.com/tsafavi/codex/3132e426c2a6b643b70bad679905a3a6270be440/data/triples/"
	ogb       = "https://snap.stanford.edu/ogb/data/nodeproppred/"
	wikidata  = "https://huggingface.co/datasets/intfloat/wikidata5m/resolve/6b2b09672129e280c0c9da97ab58154e9d535e6b/"
)

// Sets returns the catalogue, in the order of the list.
func Sets() []Set {
	return []Set{
		{
			Name: "cora", What: "citations, 2,708 nodes, 7 classes, the Planetoid split", Licence: "MIT (repository); the LINQS data states none", Source: "github.com/kimiyoung/planetoid",
			Files: planetoidSet("cora", []File{
				{Name: "x", SizeBytes: 22119, SHA256: "23cfa55d91c6f624233f5eb7b6e3f141f1bd2b2ae39608a63cf5d084bb27baab"},
				{Name: "y", SizeBytes: 4054, SHA256: "94465c14eb53e04ca262198dcbb2521ee8af60fb3f3d546cd6ca24a511b0e7d1"},
				{Name: "tx", SizeBytes: 148025, SHA256: "b9afbaa4a400df991f6f02ef677e1e44da55ffc04801fd02f9e673987829226a"},
				{Name: "ty", SizeBytes: 28135, SHA256: "41f5ac76596a1699cc33f53084a2419e92961c42bb75f36fc38e616d348532ad"},
				{Name: "allx", SizeBytes: 257305, SHA256: "9419ba2f26f5c35243db64aba110e0f35a04851609e0dc5433450676ca6b8543"},
				{Name: "ally", SizeBytes: 47959, SHA256: "2b998f5cc7fedc86e7f97ca2498f47a1ffc1462c29e2d578b23bf3f62b6e7d71"},
				{Name: "graph", SizeBytes: 59847, SHA256: "58f13302f39dde8852dad6fe6d15b89b077b6d7f837626bce671ef80344b383d"},
				{Name: "test.index", SizeBytes: 5000, SHA256: "297ce89af2b51a6a194181c7dbe1796c6a1cf9cd9349a88383b1b1e227867875"},
			}),
			Read: planetoidFlags,
		},
		{
			Name: "citeseer", What: "citations, 3,327 nodes, 6 classes, the Planetoid split", Licence: "MIT (repository); the LINQS data states none", Source: "github.com/kimiyoung/planetoid",
			Files: planetoidSet("citeseer", []File{
				{Name: "x", SizeBytes: 31087, SHA256: "d20de19150741e555de0ed037195630fc194114ebc7fd72ced62810148aa22f6"},
				{Name: "y", SizeBytes: 3014, SHA256: "8ba87e515d8e3ee3cf52f6d2c5b86aa73f11ecad825a808455209ec26cd54924"},
				{Name: "tx", SizeBytes: 260321, SHA256: "539a8906a2da97628d212f2fdd668c109a8b3f0d36574b59e5d3fd5b5303da21"},
				{Name: "ty", SizeBytes: 24135, SHA256: "55e5bd1ba1e733a04598753ad1a8d57957f4b8f89e74519f41f4f4938767e4ce"},
				{Name: "allx", SizeBytes: 595021, SHA256: "2ac30345d95c9ec933a817ee0bdd6a5f077f8c184a20e696910192d534414668"},
				{Name: "ally", SizeBytes: 55623, SHA256: "f704b2d986dde6c2669934de1f3ae5696a6cf9455c0f6b2646a2d135ea0a1c95"},
				{Name: "graph", SizeBytes: 61987, SHA256: "d79a4ef9d3e7169aee8946145f6b7306e35bc79bffad26346cfb94e10e9912a7"},
				{Name: "test.index", SizeBytes: 5000, SHA256: "2af990671580b6b2df5d158d1038f8292e30c9cd821b5453f399659b25b723d4"},
			}),
			Read: planetoidFlags,
		},
		{
			Name: "pubmed", What: "citations, 19,717 nodes, 3 classes, the Planetoid split", Licence: "MIT (repository); the LINQS data states none", Source: "github.com/kimiyoung/planetoid",
			Files: planetoidSet("pubmed", []File{
				{Name: "x", SizeBytes: 23172, SHA256: "fbe9cb5c47200d1b7769a26e579be3b7130b556831f9d850e77c4c74f2599b33"},
				{Name: "y", SizeBytes: 854, SHA256: "e6c807633307a07ed659249006536a147c7999c797f11a2560752990181b41b3"},
				{Name: "tx", SizeBytes: 405505, SHA256: "4eb5f5d0f30f26497eb0ac6ac9719d09c67e284f1ed0385c93f3ef27a671da3d"},
				{Name: "ty", SizeBytes: 12135, SHA256: "ee2e0d4819d9fbcc403689c3bf2e49face401b605932f093bc58ab6461130fdd"},
				{Name: "allx", MaxBytes: 64 * mib, SHA256: "508e538e2abdccdd54c4d3e9f49d638b4af7107d85845f66ddea5a5152658b7e", Known: Published},
				{Name: "ally", SizeBytes: 224739, SHA256: "0c37bbe3b5014ec365e9d393cf4791925e5ed94fb194305d74f064a8d7b50f0e"},
				{Name: "graph", SizeBytes: 471808, SHA256: "5b89f0036ca22909471f1e6558eb42fa06e0c730a577bde5b058b40638f81dc9"},
				{Name: "test.index", SizeBytes: 6000, SHA256: "b101d421688bbaecbd82e8a18f1e282378d6830f3a37666f28ebc47f844341b5"},
			}),
			Read: planetoidFlags,
		},
		{
			Name: "ogbn-arxiv", What: "citations, 169,343 nodes, 1,166,243 edges, 40 classes", Licence: "ODC-BY", Source: "ogb.stanford.edu",
			Files: ogbSet("arxiv", File{SizeBytes: 83058288, SHA256: "49f85c801589ecdcc52cfaca99693aaea7b8af16a9ac3f41dd85a5f3193fe276"}),
			Read:  datasetFlags,
		},
		{
			Name: "ogbn-products", What: "co-purchases, 2,449,029 nodes, 61,859,140 edges, 47 classes", Licence: "Amazon license", Source: "ogb.stanford.edu",
			Files: ogbSet("products", File{SizeBytes: 1480993786, SHA256: "5ea0a112edaec2141c0a2a612dd4aed58df97ff3e1ab1a0ca8238f43cbbb50a8"}),
			Read:  datasetFlags,
		},
		{
			Name: "ogbn-proteins", What: "protein associations, 132,534 nodes, 39,561,252 edges, 112 labels, no node features", Licence: "CC-0", Source: "ogb.stanford.edu",
			Files: ogbSet("proteins", File{MaxBytes: 2 * gib, SHA256: "1cd3113dc2a6f0c87a549332b77d78be45cf99804c254c18d9c72029164a0859"}),
			Read:  datasetFlags,
		},
		{
			Name: "fb15k-237", What: "14,541 entities, 237 relations, 310,116 triples", Licence: "MIT (repository); Freebase facts CC-BY", Source: "github.com/TimDettmers/ConvE",
			Files: convESet("FB15k-237.tar.gz", File{SizeBytes: 3678603, SHA256: "311df7930f842a02979eaa7a802484a6afe62303c07f915f1e6edbc30cbe05e8"}),
			Read:  tripleFlags,
		},
		{
			Name: "wn18rr", What: "40,943 entities, 11 relations, 93,003 triples", Licence: "MIT (repository); WordNet licence", Source: "github.com/TimDettmers/ConvE",
			Files: convESet("WN18RR.tar.gz", File{SizeBytes: 892861, SHA256: "1eb9152f804c140d163462c0d49f65e5a0b30ab5fbb375c5e3353c11a6249060"}),
			Read:  tripleFlags,
		},
		{
			Name: "nations", What: "14 entities, 55 relations, 1,992 triples", Licence: "MIT (repository)", Source: "github.com/TimDettmers/ConvE",
			Files: convESet("nations.tar.gz", File{SizeBytes: 8077, SHA256: "feb3e3e027103089934ea7dfb67d2048d8a43e65d6757a86f2e037acb66f640b"}),
			Read:  tripleFlags,
		},
		{
			Name: "umls", What: "135 entities, 46 relations, 6,529 triples", Licence: "MIT (repository)", Source: "github.com/TimDettmers/ConvE",
			Files: convESet("umls.tar.gz", File{SizeBytes: 35648, SHA256: "26223aa91f0ec8db2324e0f489b9a4425e04d1d0df72ce5cfd62af4b91aee6fd"}),
			Read:  tripleFlags,
		},
		{
			Name: "yago3-10", What: "123,182 entities, 37 relations, 1,089,040 triples", Licence: "MIT (repository); YAGO facts CC-BY", Source: "github.com/TimDettmers/ConvE",
			Files: convESet("YAGO3-10.tar.gz", File{MaxBytes: 256 * mib, SHA256: "9a3bdd5fd08c064bd4b9ffdbe972f37ba0b8799f4e9f868ff70f5d2f5331fb92", Known: Published}),
			Read:  tripleFlags,
		},
		{
			Name: "codex-s", What: "2,034 entities, 42 relations, 36,543 triples", Licence: "MIT (repository); Wikidata facts CC0", Source: "github.com/tsafavi/codex",
			Files: textSet(codex+"codex-s/", []File{
				{Name: "train.txt", SizeBytes: 615428, SHA256: "64f93b7f314f3936a6f65739721429db3f6a7c8f5a1e1104ec3bb544f7434f59", Known: Measured},
				{Name: "valid.txt", SizeBytes: 34323, SHA256: "3831c0e57daef03c3a18cdd1a72e370b496f696c5218883d35c7d2ab8a6a772c", Known: Measured},
				{Name: "test.txt", SizeBytes: 34252, SHA256: "27127fcb34688c4778e88a39ef3c9b540807da846021e9d9685660ac1838aca1", Known: Measured},
			}),
			Read: tripleFlags,
		},
		{
			Name: "codex-m", What: "17,050 entities, 51 relations, 206,205 triples", Licence: "MIT (repository); Wikidata facts CC0", Source: "github.com/tsafavi/codex",
			Files: textSet(codex+"codex-m/", []File{
				{Name: "train.txt", MaxBytes: 64 * mib, SHA256: "d99c3437ab51690391a26d96976adf6e5494dba7ef6902e77000551bfa566556", Known: Published},
				{Name: "valid.txt", MaxBytes: 8 * mib, SHA256: "11c323096367354940846b9ed940c5dabddc1d20a70474222babe7e7fd28b28d", Known: Published},
				{Name: "test.txt", MaxBytes: 8 * mib, SHA256: "0575ce05e4ce915e395bb4f708e8df9547989dd4c8c71407cbfd78c19daffcf7", Known: Published},
			}),
			Read: tripleFlags,
		},
		{
			Name: "fb15k", What: "14,951 entities, 1,345 relations, 592,213 triples (test triples leak into train: prefer fb15k-237)", Licence: "MIT (repository); Freebase facts CC-BY", Source: "github.com/DeepGraphLearning/KnowledgeGraphEmbedding",
			Files: textSet(rotatE+"FB15k/", []File{
				{Name: "train.txt", MaxBytes: 256 * mib, Lines: 483142},
				{Name: "valid.txt", MaxBytes: 32 * mib, Lines: 50000},
				{Name: "test.txt", MaxBytes: 32 * mib, Lines: 59071},
			}),
			Read: tripleFlags,
		},
		{
			Name: "wn18", What: "40,943 entities, 18 relations, 151,442 triples (test triples leak into train: prefer wn18rr)", Licence: "MIT (repository); WordNet licence", Source: "github.com/DeepGraphLearning/KnowledgeGraphEmbedding",
			Files: textSet(rotatE+"wn18/", []File{
				{Name: "train.txt", MaxBytes: 64 * mib, Lines: 141442},
				{Name: "valid.txt", MaxBytes: 8 * mib, Lines: 5000},
				{Name: "test.txt", MaxBytes: 8 * mib, Lines: 5000},
			}),
			Read: tripleFlags,
		},
		{
			Name: "nell-995", What: "75,492 entities, 200 relations, OpenKE's numbered files", Licence: "no licence file in the repository", Source: "github.com/thunlp/OpenKE",
			Files: textSet(openKE+"NELL-995/", []File{
				{Name: "entity2id.txt", MaxBytes: 16 * mib},
				{Name: "relation2id.txt", MaxBytes: 1 * mib},
				{Name: "train2id.txt", MaxBytes: 16 * mib},
				{Name: "valid2id.txt", MaxBytes: 1 * mib},
				{Name: "test2id.txt", MaxBytes: 1 * mib},
			}),
			Read: numberedFlags,
		},
		{
			Name: "wikidata5m", What: "about 4.6 million entities, 822 relations, 20.6 million triples, the transductive split", Licence: "CC0 (Wikidata)", Source: "huggingface.co/datasets/intfloat/wikidata5m",
			Files: []File{{
				URL: wikidata + "wikidata5m_transductive.tar.gz", Name: "wikidata5m_transductive.tar.gz", SizeBytes: 168258214,
				SHA256: "383160990b41c0905fc03f4a8afbb9b12be1ca3591e026bde6cdc94a59542597", Known: Published,
				Unpack: &Unpack{Format: "tar.gz", MaxBytes: 4 * gib, Places: map[string]string{
					"wikidata5m_transductive_train.txt": "train.txt", "wikidata5m_transductive_valid.txt": "valid.txt", "wikidata5m_transductive_test.txt": "test.txt",
				}},
			}},
			Read: tripleFlags,
		},
	}
}

// notTaken are sets that people ask for and `precompute` can't read.
var notTaken = map[string]string{
	"ogbn-mag":        "its edges are in several tables of different node types, a layout that precompute doesn't read",
	"ogbn-papers100m": "it comes as .npz files of 56 GB in a layout that precompute doesn't read",
}

// Find returns the set of that name.
func Find(name string) (*Set, error) {
	sets := Sets()
	for i := range sets {
		if sets[i].Name == name {
			return &sets[i], nil
		}
	}
	if why, ok := notTaken[name]; ok {
		return nil, fmt.Errorf("%s isn't offered: %s", name, why)
	}
	return nil, fmt.Errorf("no data set is called %q; `list` shows the names", name)
}

// planetoidSet completes the files of a Planetoid set, which are named by their part. Digests are measured where
// nothing else is said.
func planetoidSet(name string, files []File) []File {
	for i := range files {
		f := &files[i]
		f.Name = "ind." + name + "." + f.Name
		f.URL = planetoid + f.Name
		if f.Known == "" {
			f.Known = Measured
		}
	}
	return files
}

// ogbSet completes the one file of an OGB set: of its archive the tables and splits are taken.
func ogbSet(name string, f File) []File {
	f.Name = name + ".zip"
	f.URL, f.Known = ogb+f.Name, Published
	f.Unpack = &Unpack{Format: "zip", MaxBytes: 8 * gib, Places: map[string]string{name + "/raw/": "raw/", name + "/split/": "split/"}}
	return []File{f}
}

// convESet completes the one archive of a knowledge graph in ConvE's form. Its digest is measured where nothing else is said.
func convESet(archive string, f File) []File {
	f.Name, f.URL = archive, convE+archive
	if f.Known == "" {
		f.Known = Measured
	}
	f.Unpack = &Unpack{Format: "tar.gz", MaxBytes: gib, Places: map[string]string{"train.txt": "train.txt", "valid.txt": "valid.txt", "test.txt": "test.txt"}}
	return []File{f}
}

// textSet completes files that lie under one address.
func textSet(base string, files []File) []File {
	for i := range files {
		files[i].URL = base + files[i].Name
	}
	return files
}
